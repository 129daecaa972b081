/** One fault each in who hears of what became claimable (D18), and of what has reached a run that is held (D44). */
import { Effect } from "effect"
import { toldInTime, type Calls } from "../harnesses.js"

export interface WakeUpMutant {
  readonly fault: string
  readonly caughtBy: string
  readonly calls: Calls
}

const lost = (of: string): Calls => ({
  ...toldInTime,
  telling: (call, made, tell, act) => (act === of ? call : toldInTime.telling(call, made, tell, act)),
})

const early = (of: string): Calls => ({
  ...toldInTime,
  telling: (call, made, tell, act) =>
    act === of
      ? // The look that follows comes before the commit.
        Effect.zipRight(tell, Effect.zipRight(Effect.sleep(50), call))
      : toldInTime.telling(call, made, tell, act),
})

const unheard = (of: string): Calls => ({
  ...toldInTime,
  reaching: (call, owner, tell, act) => (act === of ? call : toldInTime.reaching(call, owner, tell, act)),
})

const reached = "D44: what reaches a run that a worker holds"
const unreached = "D44: nobody is told"

const created = "D18: a run that one connection creates"
const unparked = "D18: a parked run that one connection unparks"
const answered = "D18: a parked run that one connection answers"
const sent = "D18: a run that waits and is sent"
const canceled = "D18: a run that sleeps and is to be canceled"
const decided = "D18: a run in review that is decided"
const childEnded = "D18: a parent that waits"
const released = "D18: a worker that gives up"
const nothing = "D18: nothing is heard"
const dies = "D18: a start or an unpark that dies"

export const wakeUpMutants: ReadonlyArray<WakeUpMutant> = [
  { fault: "a start is told to nobody", caughtBy: created, calls: lost("createRun") },
  { fault: "the start of a child is told to nobody", caughtBy: created, calls: lost("createChild") },
  { fault: "a start is told before it is committed", caughtBy: created, calls: early("createRun") },
  {
    fault: "a start is told twice",
    caughtBy: created,
    calls: {
      ...toldInTime,
      telling: (call, made, tell) => toldInTime.telling(call, made, Effect.zipRight(tell, tell), "createRun"),
    },
  },
  { fault: "an unpark is told to nobody", caughtBy: unparked, calls: lost("unpark") },
  { fault: "an unpark is told before it is committed", caughtBy: unparked, calls: early("unpark") },
  { fault: "an answer is told to nobody", caughtBy: answered, calls: lost("answer") },
  { fault: "a signal is told to nobody", caughtBy: sent, calls: lost("send") },
  { fault: "a signal is told before it is committed", caughtBy: sent, calls: early("send") },
  { fault: "a cancel is told to nobody", caughtBy: canceled, calls: lost("requestCancel") },
  { fault: "a decision is told to nobody", caughtBy: decided, calls: lost("decideWait") },
  { fault: "a decision is told before it is committed", caughtBy: decided, calls: early("decideWait") },
  { fault: "a resumed run is told to nobody", caughtBy: "D18: a paused run that is resumed", calls: lost("setPaused") },
  {
    fault: "a reopened run is told to nobody",
    caughtBy: "D18: a failed run that is reopened",
    calls: lost("reopenRun"),
  },
  { fault: "a fork is told to nobody", caughtBy: "D18: a fork is heard of", calls: lost("forkRun") },
  { fault: "a fork is told before it is committed", caughtBy: "D18: a fork is heard of", calls: early("forkRun") },
  {
    fault: "the run of a schedule is told to nobody",
    caughtBy: "D18: the run of a schedule",
    calls: lost("fireSchedule"),
  },
  { fault: "the end of a child is told to nobody", caughtBy: childEnded, calls: lost("commit") },
  { fault: "the end of a child is told before it is committed", caughtBy: childEnded, calls: early("commit") },
  {
    fault: "a start that is to begin later, and a decision of a run that runs, are told",
    caughtBy: nothing,
    calls: {
      ...toldInTime,
      telling: (call, made, tell, act) => toldInTime.telling(call, act === "decideWait" ? () => true : made, tell, act),
    },
  },
  { fault: "a release is told to nobody", caughtBy: released, calls: lost("releaseWorker") },
  { fault: "a release is told before it is committed", caughtBy: released, calls: early("releaseWorker") },
  {
    fault: "a start that found its run, and an unpark of none, are told",
    caughtBy: nothing,
    calls: {
      ...toldInTime,
      telling: (call, made, tell, act) =>
        toldInTime.telling(call, act === "releaseWorker" ? made : () => true, tell, act),
    },
  },
  {
    fault: "a release of nothing that was running is told",
    caughtBy: nothing,
    calls: { ...toldInTime, telling: (call, _, tell, act) => toldInTime.telling(call, () => true, tell, act) },
  },
  { fault: "a signal to a held run is told to nobody", caughtBy: reached, calls: unheard("send") },
  { fault: "a decision of a held run is told to nobody", caughtBy: reached, calls: unheard("decideWait") },
  { fault: "a pause is told to nobody", caughtBy: reached, calls: unheard("setPaused") },
  { fault: "the cancel of a held run is told to nobody", caughtBy: reached, calls: unheard("requestCancel") },
  { fault: "the end of a child is not told to its parent's owner", caughtBy: reached, calls: unheard("commit") },
  {
    fault: "what reaches a held run is told to somebody else",
    caughtBy: reached,
    calls: {
      ...toldInTime,
      reaching: (call, owner, tell, act) =>
        toldInTime.reaching(call, owner, (workerId) => tell(`not ${workerId}`), act),
    },
  },
  {
    fault: "what reaches a held run is told twice",
    caughtBy: unreached,
    calls: {
      ...toldInTime,
      reaching: (call, owner, tell, act) =>
        toldInTime.reaching(call, owner, (workerId) => Effect.zipRight(tell(workerId), tell(workerId)), act),
    },
  },
  {
    fault: "what reaches a run that nobody holds is told to somebody",
    caughtBy: unreached,
    calls: {
      ...toldInTime,
      reaching: (call, owner, tell, act) =>
        toldInTime.reaching(call, (result) => owner(result) ?? "somebody", tell, act),
    },
  },
  { fault: "a call that fails is told", caughtBy: dies, calls: { ...toldInTime, dead: (tell) => tell } },
]
