/** Who subscribes to the newsletter. Every fiftieth has moved away without a word. */
export const recipients = Array.from({ length: 1_000 }, (_, index) => {
  const number = String(index + 1).padStart(4, "0")
  return { id: `r-${number}`, address: `reader-${number}@${index % 50 === 7 ? "gone" : "reader"}.example` }
})

export const goneAddresses: ReadonlyArray<string> = recipients
  .map(({ address }) => address)
  .filter((address) => address.endsWith("@gone.example"))
