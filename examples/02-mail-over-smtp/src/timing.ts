/** The two durations that a restart has to respect. */

/** Short, so that the demo is: a worker that is killed keeps its runs for this long. */
export const leaseMs = 1_000

/**
 * How long the mail server may take to answer, and its mailbox to show what it has accepted: nobody asks the mailbox
 * before this has passed since the send could last have begun.
 */
export const operationTimeoutMs = 2_000
