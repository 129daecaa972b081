/** Which statements would part a step's transaction from its checkpoint (T4). */
import { describe, expect, it } from "vitest"
import { controlsTransaction } from "../src/driver/stepClient.js"

describe("a statement that begins or ends the transaction", () => {
  it.each([
    "begin",
    "BEGIN IMMEDIATE",
    " commit ",
    "end",
    "END TRANSACTION",
    "abort",
    "rollback",
    "start transaction isolation level serializable",
    "prepare transaction 'a'",
    "-- a note\ncommit",
    "/* a note */ rollback",
    "insert into t values (1); commit",
    "insert into t values ('it''s'); COMMIT; begin",
  ])("is found: %s", (text) => {
    expect(controlsTransaction(text)).toBe(true)
  })

  it.each([
    "insert into t values ('; commit')",
    'select "; commit" from t',
    "select $$; commit$$, $tag$ ; rollback $tag$",
    "select 1 -- ; commit",
    "savepoint a",
    "rollback to savepoint a",
    "ROLLBACK WORK TO a",
    "select endpoint, beginning from t",
    "update t set commit = 1",
    "create trigger a after insert on t begin insert into u values (1); end",
  ])("is not seen in: %s", (text) => {
    expect(controlsTransaction(text)).toBe(false)
  })
})
