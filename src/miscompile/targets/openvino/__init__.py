"""OpenVINO, CPU plugin."""
