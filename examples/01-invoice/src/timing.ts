/** The two durations that a restart has to respect. */

/** Short, so that the demo is: a worker that is killed keeps its runs for this long. */
export const leaseMs = 1_000

/** How long either provider may take to answer. A restart waits this long for an answer that may still be under way. */
export const operationTimeoutMs = 2_000
