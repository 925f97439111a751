"""`lightspeed nccl report`: what nccl-tests printed, read (`rows`, `log`, `data_log`), understood
(`facts`, `machine`, `check`), judged (`published`, `verdict`, `cases`, `judge`, `shape`,
`compare`), told (`words`, `advice`, `as_data`) and shown (`page`).
"""
