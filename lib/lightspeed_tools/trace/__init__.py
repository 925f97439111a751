"""`lightspeed trace`: a profile of PyTorch's (Kineto's JSON), read in pieces (`pieces`), kept in
columns (`reader`), accounted for by device (`account`), run again without a cause (`rebuild`,
`replay`), judged (`diagnosis`, `work`), told (`report`) and shown (`page`). `made` writes traces
whose truth is known.
"""
