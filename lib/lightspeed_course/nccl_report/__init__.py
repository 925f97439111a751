"""`lightspeed nccl report`: what nccl-tests printed, read (`log`), judged (`verdict`) and shown
(`page`).
"""
