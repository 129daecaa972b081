/** Judges what has happened. */
import { expenses } from "./expenses.js"
import type { Decided, Facts } from "./scenario.js"

const isRefused = ({ exit, said }: Decided): boolean => exit === 1 && said.includes("DecisionRefused")

/** What is wrong: nothing, if the first decision counted, and only what was approved has been paid, once. */
export const complaints = ({ workers, rivals, approval, rejection, late, ends, log }: Facts): ReadonlyArray<string> => {
  const found: Array<string> = []
  const expect = (holds: boolean, problem: string): void => {
    if (!holds) found.push(problem)
  }
  expect(workers.join() === "SIGKILL,0", `the workers ended with ${workers.join(", ")} instead of SIGKILL, 0`)
  const [ann, bob] = rivals
  const winners = rivals.filter(({ exit }) => exit === 0)
  expect(winners.length === 1, `${winners.length} of two decisions were taken`)
  expect(rivals.filter(isRefused).length === 1, `of two decisions none was refused: ${ann.said}; ${bob.said}`)
  expect(approval.exit === 0, `the approval was not taken: ${approval.said}`)
  expect(rejection.exit === 0, `the rejection was not taken: ${rejection.said}`)
  expect(isRefused(late), `a late decision was not refused: ${late.said}`)

  const isApproved = ann.exit === 0
  const train = ends.get("train-7")
  expect(
    isApproved ? train?.startsWith("paid") === true : train === "rejected by Bob: too dear",
    `train-7 ended as '${train}', and ${isApproved ? "Ann" : "Bob"} had decided`,
  )
  expect(ends.get("hotel-8") === "rejected by Cleo: the trip was called off", `hotel-8: '${ends.get("hotel-8")}'`)
  expect(ends.get("books-9") === "expired: nobody has decided", `books-9: '${ends.get("books-9")}'`)

  expect(ends.get("paper-6")?.startsWith("paid") === true, `paper-6: '${ends.get("paper-6")}'`)

  const paid = log.filter(({ event }) => event === "paid").map(({ to }) => to)
  const due = [expenses["paper-6"].of.person, ...(isApproved ? [expenses["train-7"].of.person] : [])]
  expect(paid.sort().join() === due.join(), `paid: '${paid.join()}' instead of '${due.join()}'`)
  return found
}
