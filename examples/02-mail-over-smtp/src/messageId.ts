/** The `Message-ID` of a mail, made from the key under which Cairn has recorded that it will be sent. */
import { createHash } from "node:crypto"

/** 128 bits of a hash. */
const hashLength = 32

/** The longest domain name there is, in characters (RFC 1035). */
const maxDomainLength = 253

/** Longest Message-ID of this function, angle brackets included: `<`, the hash, `@`, the domain, `>`. */
export const maxMessageIdLength = hashLength + maxDomainLength + 3

/** `dot-atom-text` of RFC 5322, as a host name has it. */
const domainName = /^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*$/

/**
 * The msg-id (RFC 5322, section 3.6.4) that stands for an idempotency key: the same for the same key, wherever it is made.
 *
 * *Shape.* `<hash@domain>`, the hash in lower-case hexadecimal. The key itself can't stand there: it may hold characters
 * that a msg-id may not (`[`, `]`, `:`), may be 255 long, and names runs that a recipient need not know of. `domain` is the
 * sender's own. Two installations whose namespaces and run ids may coincide need different ones.
 *
 * *Errors.* Throws a `RangeError` for what is no domain name.
 */
export const messageIdOf = (idempotencyKey: string, domain: string): string => {
  if (domain.length > maxDomainLength || !domainName.test(domain))
    throw new RangeError(`'${domain}' is no domain name, and the right side of a Message-ID has to be one`)
  const hash = createHash("sha256").update(idempotencyKey).digest("hex").slice(0, hashLength)
  return `<${hash}@${domain}>`
}
