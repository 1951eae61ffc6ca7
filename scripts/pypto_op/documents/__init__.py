"""One parser or generator per artefact of the operator's directory."""
