// State that a module keeps for itself: variables (`let`), and exported values that any importer could change. A rule is called with values
// and returns values, so pure code has neither. Other code has as many variables as it had, and never more.

/** Module-level `let` of each workspace that is not pure; none for a workspace that is not listed. Numbers only go down. */
export const MODULE_VARIABLES = { certificates: 1, client: 3, mux: 9, peer: 1, runtime: 2, cli: 2, dashboard: 2 };

/** The module-level variables and the exported mutable values of a syntax tree, as { name, start }. */
export function moduleState({ body }) {
  const declared = body.flatMap((statement) => {
    const isExported = statement.type === 'ExportNamedDeclaration';
    const declaration = isExported ? statement.declaration : statement;
    return declaration?.type === 'VariableDeclaration' && !declaration.declare
      ? declaration.declarations.map((one) => ({ ...one, kind: declaration.kind, isExported }))
      : [];
  });
  const exportedLater = new Set(
    body.filter(({ type, source }) => type === 'ExportNamedDeclaration' && !source).flatMap(namesOfList),
  );
  const mutable = new Set(declared.filter(({ init }) => isMutable(init)).map(({ id }) => id.name));
  const isMadeHere = (init) => isMutable(init) || (init?.type === 'Identifier' && mutable.has(init.name));
  const shown = ({ id, start }) => ({ name: id.name ?? '…', start });
  return {
    variables: declared.filter(({ kind }) => kind !== 'const').map(shown),
    mutableExports: declared
      .filter(({ id, isExported }) => isExported || exportedLater.has(id.name))
      .filter(({ id, init }) => isMadeHere(init) && !isReadonlyType(id.typeAnnotation?.typeAnnotation))
      .map(shown),
  };
}

const namesOfList = ({ specifiers }) => specifiers.map(({ local }) => local.name);

const COLLECTIONS =
  /^(?:Array|Map|Set|WeakMap|WeakSet|Buffer|ArrayBuffer|DataView|(?:Big)?(?:Ui|I)nt\w+Array|Float\w+Array)$/;

/** A list or a collection that is made here: `[…]`, `new Map()`, `Array.from(…)`, `Buffer.alloc(…)`, also with `.fill(…)` behind it. */
function isMutable(init) {
  switch (init?.type) {
    case 'ArrayExpression':
      return true;
    case 'NewExpression':
      return COLLECTIONS.test(init.callee.name ?? '');
    case 'CallExpression': {
      const { callee } = init;
      if (callee.type !== 'MemberExpression') return false;
      return COLLECTIONS.test(callee.object.name ?? '') || isMutable(callee.object);
    }
    case 'TSSatisfiesExpression':
      return isMutable(init.expression);
    case 'TSAsExpression':
      return (
        init.typeAnnotation.typeName?.name !== 'const' &&
        isMutable(init.expression) &&
        !isReadonlyType(init.typeAnnotation)
      );
    default:
      return false;
  }
}

/** Types without a way to change what they are about. */
const READONLY_TYPES = new Set(['ReadonlyArray', 'ReadonlyMap', 'ReadonlySet', 'ArrayLike', 'Iterable']);

const isReadonlyType = (type) =>
  (type?.type === 'TSTypeOperator' && type.operator === 'readonly') ||
  (type?.type === 'TSTypeReference' && READONLY_TYPES.has(type.typeName.name));
