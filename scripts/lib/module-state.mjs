// Finds state at module level: variables (`let`), collections, buffers and objects that functions write to, and exported values that
// importers could change. Rules take values and return values, so pure code has no module state. Other code has only the state listed in
// MODULE_STATE.
import { visitorKeys } from 'oxc-parser';

/**
 * Allowed module state, by file and name, each with the reason. The state contains no data of visitors: no address, credential, header,
 * body or connection. Unused memory is allowed, because the memory is overwritten before it is read.
 */
export const MODULE_STATE = {
  'apps/cli/src/output/lines.ts': { lastClock: 'a time of day as a text' },
  'apps/dashboard/src/ui/hooks.ts': {
    now: 'the time that all components show',
    timer: 'ticks while a component shows the time',
    listeners: 'components that show the time',
    mediaQueries: 'one for each query that the dashboard has',
  },
  'packages/certificates/src/acme/client/x509.ts': { loading: 'a library, loaded when it is first needed' },
  'packages/client/src/connection/tls-ciphers.ts': { preferred: 'a fact about this processor' },
  'packages/client/src/doctor/speed.ts': { CHUNK: 'zeros that are sent' },
  'packages/client/src/requests/sniffed-head.ts': { plain: 'offsets that a scan returns, read before the next one' },
  'packages/client/src/requests/request-record.ts': { NO_BODY: 'a capture of no bytes, which cannot take any' },
  'packages/client/src/state/assigned-endpoints.ts': { runsHere: 'the clients of this process' },
  'packages/http1/src/characters.ts': { classes: 'a table, filled while the module loads' },
  'packages/http1/src/field-reader.ts': { NO_VALUE: 'a pattern with an index to search from' },
  'packages/mux/src/bytes/byte-queue.ts': { freeBlocks: 'free memory' },
  'packages/mux/src/bytes/read-buffers.ts': { readBuffers: 'free memory, and how many blocks are borrowed' },
  'packages/mux/src/carrier/carrier-writer.ts': { freeBlocks: 'free memory' },
  'packages/mux/src/datagram/sealed-datagram.ts': {
    nonce: 'a counter, read before the call returns',
    openedHeader: 'the header of a packet, read before the call returns',
    openedTag: 'the tag of a packet, read before the call returns',
  },
  'packages/mux/src/loop/tick-budget.ts': { smallMessages: 'counters of the one event loop' },
  'packages/mux/src/loop/tick-flush.ts': {
    tickFlush: 'carriers that write at the end of this turn of the one event loop',
  },
  'packages/mux/src/native/dgram-handle.ts': {
    known: 'what this Node.js offers',
    stateSymbol: 'where this Node.js keeps the handle of a socket',
    spare: 'a request for the next datagram, without bytes',
  },
  'packages/mux/src/native/direct-reads.ts': {
    state: "an array in which Node.js returns a read's length",
    readIndex: 'an index in that array',
  },
  'packages/mux/src/native/handle-duplex.ts': { calls: 'a counter' },
  'packages/mux/src/native/node-handles.ts': {
    known: 'what this Node.js offers',
    spareRequest: 'an object for the next write, without owner and bytes',
  },
  'packages/mux/src/native/node-internals.ts': {
    known: 'what this Node.js offers',
    staticAllowed: 'a switch for tests',
  },
  'packages/mux/src/native/tls-handle.ts': { known: 'what this Node.js offers' },
  'packages/mux/src/session/frame-sender.ts': { SCRATCH: 'memory for one frame, wiped after an address was in it' },
  'packages/mux/src/stream/flow-control.ts': { ofProcess: 'the memory budget of the process' },
  'packages/peer/src/sealed/opened-frames.ts': { freeBlocks: 'free memory' },
  'packages/peer/src/sealed/record-reader.ts': { freeBlocks: 'free memory' },
  'packages/peer/src/sealed/sealed-carrier.ts': { REFUSAL: 'zeros that are sent' },
  'packages/peer/src/sealed/sealed-writer.ts': { freePlain: 'free memory', freeSealed: 'free memory' },
  'packages/peer/src/transport/udx-transport.ts': { loading: 'a library, loaded when it is first needed' },
  'packages/policy/src/compile/compile.ts': { NO_FIELDS: 'a list without names' },
  'packages/policy/src/compile/policy-answers.ts': { FAULTS: 'one fault for each code; none names a visitor' },
  'packages/runtime/src/clock.ts': { ofThisTurn: 'the time at which this turn of the event loop began' },
  'packages/runtime/src/files/file-lock.ts': { ownStart: 'when this process started' },
  'packages/runtime/src/secret.ts': { RANDOM_BYTES: 'random bytes that have not been used' },
};

/** Returns the module-level variables, the exported mutable values and the constants written to at run time, as { name, start }. */
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
    written: writtenState(body, declared).map(shown),
  };
}

const namesOfList = ({ specifiers }) => specifiers.map(({ local }) => local.name);

const COLLECTIONS =
  /^(?:Array|Map|Set|WeakMap|WeakSet|Buffer|ArrayBuffer|DataView|(?:Big)?(?:Ui|I)nt\w+Array|Float\w+Array)$/;

/**
 * Whether an initializer creates a list or collection: `[…]`, `new Map()`, `Array.from(…)` or `Buffer.alloc(…)`, optionally followed by
 * `.fill(…)` or similar.
 */
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

/** Types without any way to change the contents of a value. */
const READONLY_TYPES = new Set(['ReadonlyArray', 'ReadonlyMap', 'ReadonlySet', 'ArrayLike', 'Iterable']);

const isReadonlyType = (type) =>
  (type?.type === 'TSTypeOperator' && type.operator === 'readonly') ||
  (type?.type === 'TSTypeReference' && READONLY_TYPES.has(type.typeName.name));

/** Built-in classes with immutable objects, or with objects that store nothing when changed. */
const FIXED_CLASSES =
  /^(?:RegExp|URL|Date|Text(?:En|De)coder|Proxy|Promise|Error|AbortController|BlockList|(?:\w+\.)?(?:NumberFormat|DateTimeFormat|Collator|PluralRules))$/;

/** Weak collections. Their entries end with their keys, so they store nothing beyond the life of another object. */
const WEAK = /^Weak(?:Map|Set|Ref)$/;

const MUTATORS =
  /^(?:set|add\w*|delete|clear|push|pop|shift|unshift|splice|sort|reverse|fill|copyWithin|write\w*|swap\d+|append|take|keep)$/;

/**
 * Returns the module constants and static class fields that store data at run time: constants that a function writes to, memory that a
 * function passes on, and every class instance, because its fields cannot be examined here.
 */
function writtenState(body, declared) {
  const constants = declared.filter(
    ({ kind, id, init }) => kind === 'const' && id.type === 'Identifier' && !isFunction(init),
  );
  const own = new Map(constants.map((one) => [one.id.name, one]));
  const found = new Set(constants.filter(({ init }) => isInstance(init)));
  const note = (node) => {
    const one = own.get(node?.type === 'Identifier' ? node.name : '');
    if (one && !isWeak(one.init)) found.add(one);
  };
  eachRunTimeNode(body, (node) => {
    if (node.type === 'AssignmentExpression') for (const target of targetsOf(node.left)) note(rootOf(target));
    if (node.type === 'UpdateExpression' || (node.type === 'UnaryExpression' && node.operator === 'delete')) {
      note(rootOf(node.argument));
    }
    if (node.type !== 'CallExpression' && node.type !== 'NewExpression') return;
    const { callee } = node;
    if (callee.type === 'MemberExpression' && MUTATORS.test(callee.property.name ?? '')) note(rootOf(callee.object));
    for (const argument of node.arguments) {
      const root = rootOf(argument);
      const one = own.get(root?.name ?? '');
      const isChanged = argument === node.arguments[0] && callee.object?.name === 'Object';
      if (one && (isMemory(one.init) || (isChanged && /^(?:assign|define\w+)$/.test(callee.property.name)))) note(root);
    }
  });
  return [...found, ...staticState(body)];
}

/** Returns static class fields with state: fields that can be assigned later, or that hold a collection, a buffer or an object. */
function staticState(body) {
  const classes = body
    .map((statement) => statement.declaration ?? statement)
    .filter(({ type }) => type === 'ClassDeclaration');
  return classes.flatMap(({ id, body: members }) =>
    members.body
      .filter(({ type, static: isStatic }) => isStatic && type === 'PropertyDefinition')
      .filter(({ readonly, value }) => !readonly || isMutable(value) || isInstance(value))
      .map(({ key, start }) => ({ id: { name: `${id.name}.${key.name}` }, start })),
  );
}

/** Visits every node inside a function. Statements at module level run only once, before there is any data to store. */
function eachRunTimeNode(body, visit, isInside = false) {
  for (const node of body) {
    if (!node) continue;
    if (isInside) visit(node);
    const within = isInside || /Function/.test(node.type) || node.type === 'PropertyDefinition';
    for (const key of visitorKeys[node.type] ?? []) eachRunTimeNode([node[key]].flat(), visit, within);
  }
}

/** Returns `a` for `a.b[c].d`, also through parentheses and casts. */
function rootOf(node) {
  if (node?.type === 'MemberExpression') return rootOf(node.object);
  if (node?.type === 'TSAsExpression' || node?.type === 'TSNonNullExpression') return rootOf(node.expression);
  return node;
}

const targetsOf = (left) => {
  if (left.type === 'ArrayPattern') return left.elements.filter(Boolean).flatMap(targetsOf);
  if (left.type === 'ObjectPattern')
    return left.properties.flatMap(({ value, argument }) => targetsOf(value ?? argument));
  return [left.type === 'AssignmentPattern' ? left.left : left];
};

const classOf = (init) => {
  if (init?.type !== 'NewExpression') return '';
  const { callee } = init;
  return callee.type === 'MemberExpression' ? `${callee.object.name}.${callee.property.name}` : (callee.name ?? '…');
};

const isFunction = (init) => /Function/.test(init?.type ?? '');

const isWeak = (init) => WEAK.test(classOf(init));

/** Whether an initializer creates a class instance with fields, or calls a function with a name such as `newSubject`. */
function isInstance(init) {
  const name = classOf(init);
  if (name !== '') return !(COLLECTIONS.test(name) || FIXED_CLASSES.test(name) || WEAK.test(name));
  const called = init?.type === 'CallExpression' ? (init.callee.name ?? '') : '';
  return /^new[A-Z]/.test(called);
}

/** Whether an initializer allocates bytes. A buffer of length 0 holds no data. */
function isMemory(init) {
  const isBuffer = /^(?:Buffer|ArrayBuffer|DataView|(?:Big)?(?:Ui|I)nt\w+Array|Float\w+Array)$/;
  if (init?.type === 'NewExpression') return isBuffer.test(classOf(init)) && init.arguments[0]?.value !== 0;
  if (init?.type !== 'CallExpression' || init.callee.type !== 'MemberExpression') return false;
  const { object, property } = init.callee;
  return (
    (object.name === 'Buffer' && property.name.startsWith('alloc') && init.arguments[0]?.value !== 0) ||
    isMemory(object)
  );
}
