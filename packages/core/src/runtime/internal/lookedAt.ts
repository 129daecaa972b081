/** Members of an object that are computed when somebody looks at them. */

/** How the members of an object are computed, by their names. */
type Readers = Readonly<Record<string, () => unknown>>

const readers = Symbol("readers")

interface Read {
  readonly [readers]?: Readers
}

const members = new Map<string, PropertyDescriptor>()

const memberOf = (name: string): PropertyDescriptor => {
  const known = members.get(name)
  if (known !== undefined) return known
  const made: PropertyDescriptor = {
    enumerable: true,
    configurable: true,
    get(this: Read) {
      return this[readers]![name]!()
    },
  }
  members.set(name, made)
  return made
}

/**
 * Adds members that are read when they are looked at, and again each time: who computes remembers.
 *
 * One getter a name, for all objects. With getters of its own each object has a hidden class of its own; V8 keeps those in its old
 * generation, and what the getters hold on to stays with them until a full collection: all that an attempt has made.
 */
export const addLookedAt = <A extends object>(target: A, added: Readers): A => {
  const value: Readers = { ...(target as Read)[readers], ...added }
  Object.defineProperty(target, readers, { value, configurable: true })
  for (const name of Object.keys(added)) Object.defineProperty(target, name, memberOf(name))
  return target
}

/** Adds the members of another object; what is computed when it is looked at stays so. */
export const addMembersOf = <A extends object>(target: A, other: object): A => {
  const { [readers]: computed, ...plain } = Object.getOwnPropertyDescriptors(other as Read)
  Object.defineProperties(target, plain)
  return computed === undefined ? target : addLookedAt(target, computed.value as Readers)
}
