"""Parts of bench/host.py that need processes of their own."""
