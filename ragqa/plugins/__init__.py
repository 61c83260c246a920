"""Every part by name, bundled or from another package, and the protocols of the stages."""
