/**
 * Members of an object that are computed when somebody looks at them.
 *
 * A proxy that stands before the plain members. Getters of the object's own would say the same, at fifty times the cost: each is
 * defined by a call into the engine, on an object that is made for one attempt and mostly not looked at.
 */

/** Members by their names. Each look computes anew: who computes remembers. */
export interface Members {
  readonly names: ReadonlyArray<string>
  readonly look: (name: string) => unknown
}

/** How members are computed, each by its name. */
export type Readers = Readonly<Record<string, () => unknown>>

class Read implements Members {
  readonly names: ReadonlyArray<string>

  constructor(private readonly readers: Readers) {
    this.names = Object.keys(readers)
  }

  look(name: string): unknown {
    return this.readers[name]!()
  }
}

/** Where both have a member, it is the second one's. */
class Joined implements Members {
  readonly names: ReadonlyArray<string>

  constructor(
    private readonly one: Members,
    private readonly other: Members,
  ) {
    this.names = [...new Set([...one.names, ...other.names])]
  }

  look(name: string): unknown {
    return (this.other.names.includes(name) ? this.other : this.one).look(name)
  }
}

const nothing = new Read({})
const behind = Symbol("members")
const inspect = Symbol.for("nodejs.util.inspect.custom")

const membersOf = (of: object): Members => (of as { readonly [behind]?: Members })[behind] ?? nothing

/** The members that are there without being computed. */
const plainOf = (of: object): object => {
  const { names } = membersOf(of)
  const plain = Object.keys(of).filter((name) => !names.includes(name))
  return Object.fromEntries(plain.map((name) => [name, of[name as never]]))
}

const shown = (members: Members, name: string): unknown => {
  try {
    return members.look(name)
  } catch (error) {
    return error
  }
}

/** Whose prototype says how it is printed: who prints a proxy asks its target. */
class Plain {
  constructor(members: object | null) {
    if (members !== null) Object.assign(this, members)
  }

  [inspect](): object {
    const members = membersOf(this)
    return { ...plainOf(this), ...Object.fromEntries(members.names.map((name) => [name, shown(members, name)])) }
  }
}

class LookedAt implements ProxyHandler<object> {
  constructor(private readonly members: Members) {}

  private isComputed(key: string | symbol): key is string {
    return typeof key === "string" && this.members.names.includes(key)
  }

  get(target: object, key: string | symbol): unknown {
    if (key === behind) return this.members
    return this.isComputed(key) ? this.members.look(key) : Reflect.get(target, key)
  }

  has(target: object, key: string | symbol): boolean {
    return this.isComputed(key) || Reflect.has(target, key)
  }

  ownKeys(target: object): Array<string | symbol> {
    return [...new Set([...Reflect.ownKeys(target), ...this.members.names])]
  }

  getOwnPropertyDescriptor(target: object, key: string | symbol): PropertyDescriptor | undefined {
    return this.isComputed(key)
      ? { enumerable: true, configurable: true, get: () => this.members.look(key) }
      : Reflect.getOwnPropertyDescriptor(target, key)
  }
}

/** An object with members that are computed when they are looked at, beside the plain ones. */
export const lookedAt = <A extends object>(plain: object | null, members: Members): A =>
  new Proxy(new Plain(plain), new LookedAt(members)) as unknown as A

/** The same of functions, each a member of its name. */
export const readAt = <A extends object>(plain: object | null, readers: Readers): A =>
  lookedAt(plain, new Read(readers))

/** An object with the members of both, the second one's where both have one; what is computed when it is looked at stays so. */
export const joinedMembers = <A extends object>(one: object, other: object): A =>
  lookedAt(Object.assign(plainOf(one), plainOf(other)), new Joined(membersOf(one), membersOf(other)))
