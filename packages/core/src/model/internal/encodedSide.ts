/** Judges from an Effect schema's AST whether what it encodes to is JSON, without encoding anything. */
import * as Option from "effect/Option"
import * as AST from "effect/SchemaAST"

type Seen = Set<AST.AST>

const nameOf = (ast: AST.AST): string =>
  Option.getOrElse(
    Option.orElse(AST.getIdentifierAnnotation(ast), () => AST.getDescriptionAnnotation(ast)),
    () => "a declared type",
  )

const memberProblem = (key: PropertyKey, type: AST.AST, optional: boolean, seen: Seen): string | null => {
  if (typeof key === "symbol") return `the symbol key ${String(key)} has no JSON form`
  // An absent key may hold undefined; anything else in the union must still be JSON.
  const problem =
    optional || AST.isUnion(type) ? unionProblem(AST.isUnion(type) ? type.types : [type], seen) : astProblem(type, seen)
  return problem === null ? null : `.${String(key)}: ${problem}`
}

const unionProblem = (types: ReadonlyArray<AST.AST>, seen: Seen): string | null => {
  for (const type of types) {
    if (AST.isUndefinedKeyword(type)) continue
    const problem = astProblem(type, seen)
    if (problem !== null) return problem
  }
  return null
}

const mayBeUndefined = (type: AST.AST): boolean =>
  (AST.isUnion(type) ? type.types : [type]).some((t) => AST.isUndefinedKeyword(t))

const elementProblem = (type: AST.AST, seen: Seen): string | null => {
  if (mayBeUndefined(type)) return "undefined in a list becomes null in JSON"
  return astProblem(type, seen)
}

const astProblem = (ast: AST.AST, seen: Seen): string | null => {
  switch (ast._tag) {
    case "StringKeyword":
    case "NumberKeyword":
    case "BooleanKeyword":
    case "NeverKeyword":
    case "TemplateLiteral":
    case "Enums":
    case "UndefinedKeyword":
    case "VoidKeyword":
      return null
    case "Literal":
      return typeof ast.literal === "bigint" ? "a bigint literal has no JSON form" : null
    case "BigIntKeyword":
      return "bigint has no JSON form; use Schema.BigInt"
    case "SymbolKeyword":
    case "UniqueSymbol":
      return "symbol has no JSON form"
    case "UnknownKeyword":
    case "AnyKeyword":
    case "ObjectKeyword":
      return "its shape is unknown; say what it is"
    case "Declaration":
      return `${nameOf(ast)} has no JSON form`
    case "Refinement":
      return astProblem(ast.from, seen)
    case "Transformation":
      return nameOf(ast.to).startsWith("Redacted")
        ? "a redacted value would be stored in plain text; keep secrets in a service"
        : astProblem(ast.from, seen)
    case "Suspend":
      if (seen.has(ast)) return null
      seen.add(ast)
      return astProblem(ast.f(), seen)
    case "Union":
      return unionProblem(ast.types, seen)
    case "TupleType": {
      for (const element of [...ast.elements, ...ast.rest]) {
        const problem = elementProblem(element.type, seen)
        if (problem !== null) return `[]: ${problem}`
      }
      return null
    }
    case "TypeLiteral": {
      for (const property of ast.propertySignatures) {
        const problem = memberProblem(property.name, property.type, property.isOptional, seen)
        if (problem !== null) return problem
      }
      for (const index of ast.indexSignatures) {
        if (AST.isSymbolKeyword(index.parameter)) return "symbol keys have no JSON form"
        // Unlike a named key, one that is absent because its value was undefined cannot be told from no key at all.
        if (mayBeUndefined(index.type)) return ".*: a key whose value is undefined becomes an absent key in JSON"
        const problem = memberProblem("*", index.type, false, seen)
        if (problem !== null) return problem
      }
      return null
    }
  }
}

/**
 * Why the encoded side is no JSON, or null. The walk takes the `from` of each transformation itself: `encodedAST` makes
 * new thunks for a recursive schema at every level, so that no visited set would ever end it.
 */
export const encodedProblem = (ast: AST.AST): string | null => astProblem(ast, new Set())
