/**
 * Text for people, as every store can keep it: Postgres takes no NUL, and what is half of a surrogate pair has no UTF-8. Such units are
 * replaced as decoders do it. Names that something is found by are refused instead (`checkId`).
 */
export const storableText = (text: string): string => text.replace(/[\0\p{Cs}]/gu, "\ufffd")
