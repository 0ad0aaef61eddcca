"""The product's services as processes of their own on given servers, for tests and measurements of the whole."""
