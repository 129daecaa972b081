/** What a workflow's runs may spend on paid calls. */

/**
 * Budgets of a workflow, in whole micro-dollars (`Usage.dollars(5)`).
 *
 * *Shape.* `run`: of one run with all of its children. `day`: of all runs of the workflow, in all versions, on one day (UTC, by the
 * store's clock). A run that finds no room for its next paid call is parked before it (`BudgetExceeded`): for a person, or, where a
 * day's budget is used up, until the day is over. Room is what is left once what was spent, and what is reserved for calls whose
 * cost is not known, is taken off. Calls that say what they cost at most (`atMost`, of a model with a price) never overshoot a
 * budget, however many are made at once; of those that do not, as many may overshoot it as are under way when it is used up.
 *
 * *Laws.* D39. The numbers are those of the workers' code: a deploy changes them, also for runs that are there.
 *
 * @category options
 * @since 0.1.0
 */
export interface Budget {
  readonly run?: number
  readonly day?: number
}
