//! What the exit codes mean, as the help of a verb says it.

/// Those of most verbs.
pub(crate) const EXIT_CODES: &str = "Exit codes: 0 all is well; 1 a promise was broken, a file is damaged, or something \
                                     was refused; 2 the arguments are wrong; 3 it could not run or reach the daemon, \
                                     and one line on stderr says why.";

/// Those of all verbs together.
pub(crate) const ALL_CODES: &str = "Exit codes: 0 all is well; 1 a promise was broken, a file is damaged, a check has failed, \
                                    or something was refused; 2 the arguments are wrong; 3 it could not run or reach the \
                                    daemon, or, of run and dev, its drain was cut off, and one line on stderr says why; 4, of \
                                    run and dev: it ran, and a fault of the disk or the store stopped it.";

/// Those of `run` and `dev`.
pub(crate) const SERVE_CODES: &str = "Exit codes: 0 it was stopped in order; 1 the definitions have mistakes; 2 the arguments are \
                                      wrong; 3 it could not start, or its drain was cut off, and one line on stderr says why; 4 \
                                      it ran, and a fault of the disk or the store stopped it.";

/// Those of `doctor`.
pub(crate) const DOCTOR_CODES: &str = "Exit codes: 0 no check has failed; 1 a check has failed (FAIL); 2 the arguments are wrong; \
                                       3 it could not reach the daemon, and one line on stderr says why.";

/// Those of `cluster`.
pub(crate) const CLUSTER_CODES: &str = "Exit codes: 0 all is well; 1 status shows a problem or a partition without an owner, or \
                                        something was refused; 2 the arguments are wrong; 3 it could not reach the daemon, and \
                                        one line on stderr says why.";

/// Those of `verify`.
pub(crate) const VERIFY_CODES: &str = "Exit codes: 0 the file is sound; 1 it is damaged; 2 the arguments are wrong; 3 it could not \
                            be looked at: it is not seriatim's, beyond recognition, or held by a process that is named.";

/// Those of `check`.
pub(crate) const CHECK_CODES: &str = "Exit codes: 0 there is no mistake; 1 there are mistakes; 2 the arguments are wrong; 3 the folder \
                           could not be read.";
