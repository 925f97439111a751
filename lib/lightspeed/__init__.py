"""Laws and constants of the performance of ML systems; each law is a pure function (see `law`)."""
