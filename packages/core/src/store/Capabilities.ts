/** What a store can do beyond the laws that all keep. */

/**
 * Declared by each driver, instead of tests that skip by name.
 *
 * *Shape.* `transactions`: a step may run statements in the transaction that commits it. `notify`: other processes are
 * woken at once, not by polling. `multiProcess`: several processes may use the store. `rowSecurity`: the database itself
 * keeps namespaces apart.
 *
 * @category models
 * @since 0.1.0
 */
export interface Capabilities {
  readonly name: string
  readonly transactions: boolean
  readonly notify: boolean
  readonly multiProcess: boolean
  readonly rowSecurity: boolean
}
