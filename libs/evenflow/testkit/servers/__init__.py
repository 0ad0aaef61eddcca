"""Real servers for the server profile, without a container engine: each a process of its own on loopback.

    python -m evenflow.testkit.servers up      build what is missing, start all, print their addresses
    python -m evenflow.testkit.servers down    stop them

`choosing` is what tests ask: addresses named in the environment, else a container engine, else these processes.
The document server is a stand-in for MongoDB, not MongoDB: see deploy/local/README.md.
"""
