"""The ways between parties: links between sites, HTTP without sockets, the object store as a site reaches it."""
