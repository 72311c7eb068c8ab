"""Releasing and grading the labs, on top of nbgrader and in its own terms.

What a submission passes, in order: ``collect`` (with ``archives``, ``platforms``, ``worksheet``, ``roster``,
``receipts``) takes it in; ``reading``, ``raw_cells``, ``matching`` and ``intake`` turn its bytes into a
``outcome.Paper``; ``exam`` is what the instructor wrote (in ``exam_cells``, with ``credit``), ``template`` what was
released; ``assess`` is the unit of work that ``workers`` spread; ``sandboxed`` calls the ``checker`` (the tests, in a
trusted process) with the ``sandbox`` (the student's code); ``run`` records each ``outcome.Outcome`` through ``ledger``,
``gradebook`` and ``database``. People then see ``autograded`` (formgrader), ``feedback``, ``dashboard``, ``marks``,
``exports`` and ``regrade``; what a stranger wrote goes through ``harmless`` before. ``late`` and ``privacy`` are rules
on top.

Making labs: ``course`` and ``preprocessors`` release them, ``archive`` packs them, ``variants`` give each
student other parameters, ``regions`` and ``leaks`` look for what must not get out, ``mutants``, ``reach`` and
``mutation`` test the tests.
"""
