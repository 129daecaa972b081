/**
 * One scenario: a worker is started, killed after the payment API has answered, started again, killed after the mail
 * API has answered, started again, and finishes. What happened is read from the durable logs of the providers.
 */
import { mkdirSync } from "node:fs"
import type { ModelEntry } from "./extractors/engine.js"
import { runWorker, startProvider, type RunningProvider } from "./processes.js"
import type { Entry } from "./providers/idempotentApi.js"
import { readJournal } from "./providers/journal.js"
import type { Mail } from "./providers/mail.js"
import type { Charge } from "./providers/payments.js"
import { filesIn, type Account, type Contender, type WorkerEvent, type WorkerSettings } from "./workerProtocol.js"

/** How one worker process ended: its exit code, or the signal that ended it. */
export interface Life {
  readonly killAfter: WorkerSettings["killAfter"]
  readonly exit: number | NodeJS.Signals
}

/** What is known afterwards; all but `lives`, `problems` and `account` from durable logs. */
export interface Facts {
  readonly lives: ReadonlyArray<Life>
  readonly payments: ReadonlyArray<Entry<Charge>>
  readonly mail: ReadonlyArray<Entry<Mail>>
  readonly model: ReadonlyArray<ModelEntry>
  /** By Cairn's own account; null where it was not told, as of a plain retry. */
  readonly account: Account | null
  /** By run: null where it finished well. */
  readonly problems: ReadonlyMap<string, string | null>
}

/** What happens to an invoice. */
export type Told = Exclude<WorkerEvent, { readonly event: "accounted" }>

/** Who watches a scenario while it goes on. */
export interface Audience {
  readonly providers?: (payments: RunningProvider, mail: RunningProvider) => void
  /** `life` counts from 1. */
  readonly born?: (pid: number, life: number) => void
  readonly event?: (event: Told) => void
  /** With what the providers' logs say at that moment. */
  readonly died?: (life: Life, so: Pick<Facts, "payments" | "mail">) => void
}

const deaths = ["charge", "email", null] as const

const logOf = async <Done>(provider: RunningProvider): Promise<ReadonlyArray<Entry<Done>>> =>
  (await (await fetch(`${provider.url}/log`)).json()) as ReadonlyArray<Entry<Done>>

export const play = async (contender: Contender, folder: string, audience: Audience = {}): Promise<Facts> => {
  mkdirSync(folder, { recursive: true })
  const files = filesIn(folder)
  const [payments, mail] = await Promise.all([
    startProvider("payments", files.payments),
    startProvider("mail", files.mail),
  ])
  try {
    audience.providers?.(payments, mail)
    const lives: Array<Life> = []
    const problems = new Map<string, string | null>()
    let account: Account | null = null
    for (const killAfter of deaths) {
      const worker = runWorker(
        { ...contender, folder, paymentsUrl: payments.url, mailUrl: mail.url, killAfter },
        (event) => {
          if (event.event === "finished") problems.set(event.run, event.problem)
          if (event.event === "accounted") account = event
          else audience.event?.(event)
        },
      )
      audience.born?.(worker.pid, lives.length + 1)
      const life: Life = { killAfter, exit: await worker.exit }
      lives.push(life)
      audience.died?.(life, { payments: await logOf<Charge>(payments), mail: await logOf<Mail>(mail) })
    }
    return {
      lives,
      payments: await logOf<Charge>(payments),
      mail: await logOf<Mail>(mail),
      model: readJournal<ModelEntry>(files.model),
      account,
      problems,
    }
  } finally {
    await Promise.all([payments.stop(), mail.stop()])
  }
}
