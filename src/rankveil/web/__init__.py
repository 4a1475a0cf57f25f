"""The local workbench: pages in a browser, a workspace folder that keeps everything, and work in the background."""
