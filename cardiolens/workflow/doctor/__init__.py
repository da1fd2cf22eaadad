"""What a sweep will need of this machine, looked at before anything is loaded."""
