"""Practice: questions with a diagnosis, predictions, drill cards and what became of them.

    ask("roofline.int8_critical_batch")              # prompt, answer box, verdict, worked solution
    check("roofline.int8_critical_batch", answer)    # the verdict alone
    predict("numbers.dram_over_fma", guess); reveal("numbers.dram_over_fma"); calibration()
    cards("numbers"); progress()
    today()                                          # what is due and next: desk.py, memory.py

A page imports these from `lightspeed_course`. Questions are in `content/`, a text a topic.
"""
