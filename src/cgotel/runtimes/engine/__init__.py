"""Docker's Engine API over a Unix socket, as Docker and Podman both speak it. It is asked by GET only."""
