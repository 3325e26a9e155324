// Lists the branches of a source file: functions, both sides of conditions and of logical operators, switch cases, catch clauses and loop
// bodies. A branch is identified by its function, its kind and the text of its condition, so that the branch is found again after other
// lines have moved or changed.
import { createHash } from 'node:crypto';
import { parseSync } from 'oxc-parser';
import { walkTree } from '../syntax-tree.mjs';

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);
const LOOPS = new Set(['ForStatement', 'ForInStatement', 'ForOfStatement', 'WhileStatement', 'DoWhileStatement']);

/**
 * Lists the branches of a source. `range` is the code that runs when the branch is taken. A branch without code (a missing `else`, or an
 * operand that decides the result) has `over` instead: the ranges of the whole expression and of the opposite branch. Such a branch is
 * taken if the whole expression runs more often than the opposite branch.
 * @returns {{ id: string, line: number, text: string, range?: [number, number], over?: [[number, number], [number, number]] }[]}
 */
export function branchesOf(file, source) {
  const { program, comments, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
  const text = withoutComments(source, comments);
  const seen = new Map();
  const found = [];
  const lines = lineStarts(source);
  walkTree(program, (node, parents) => {
    if (node.type.startsWith('TS') && node.type.endsWith('Declaration')) return false;
    for (const { kind, head, ...where } of branchesAt(node)) {
      const words = squeeze(head ? text.slice(...head) : '');
      const scope = scopeOf(kind === 'function' ? [...parents, node] : parents, text);
      const name = `${scope} ${kind} ${hash(words)}`;
      const nth = (seen.get(name) ?? 0) + 1;
      seen.set(name, nth);
      const said = `${scope}: ${kind}${words === '' ? '' : ` ${words.slice(0, 100)}`}`;
      found.push({ id: `${name} ${nth}`, line: lineOf(lines, node.start), text: said, ...where });
    }
    return true;
  });
  return found;
}

const span = (node) => [node.start, node.end];

function branchesAt(node) {
  if (FUNCTIONS.has(node.type)) return node.body ? [{ kind: 'function', range: inside(node.body) }] : [];
  if (LOOPS.has(node.type)) {
    const head = node.type === 'DoWhileStatement' ? span(node.test) : [node.start, node.body.start];
    return [{ kind: 'loop', head, range: inside(node.body) }];
  }
  switch (node.type) {
    case 'IfStatement': {
      const head = span(node.test);
      const then = inside(node.consequent);
      const otherwise = node.alternate ? { range: inside(node.alternate) } : { over: [head, then] };
      return [
        { kind: 'if', head, range: then },
        { kind: 'else', head, ...otherwise },
      ];
    }
    case 'ConditionalExpression':
      return [
        { kind: '?', head: span(node.test), range: span(node.consequent) },
        { kind: ':', head: span(node.test), range: span(node.alternate) },
      ];
    case 'LogicalExpression':
      return [
        { kind: `right of ${node.operator}`, head: span(node), range: span(node.right) },
        { kind: `left of ${node.operator}`, head: span(node), over: [span(node.left), span(node.right)] },
      ];
    case 'SwitchStatement':
      return node.cases
        .filter(({ consequent }) => consequent.length > 0)
        .map((one) => ({
          kind: 'case',
          head: one.test ? span(one.test) : undefined,
          range: [one.consequent[0].start, one.end],
        }));
    case 'CatchClause':
      return [{ kind: 'catch', range: inside(node.body) }];
    default:
      return [];
  }
}

/** Returns the range of a node without the braces, which belong to no statement. */
const inside = (node) => (node.type === 'BlockStatement' ? [node.start + 1, node.end - 1] : span(node));

/** Returns the names of the functions and classes around a node, outermost first. */
function scopeOf(nodes, text) {
  const names = [];
  nodes.forEach((node, at) => {
    if (FUNCTIONS.has(node.type)) names.push(functionName(node, nodes.slice(0, at), text));
    else if (node.type === 'ClassDeclaration' || node.type === 'ClassExpression') names.push(node.id?.name ?? 'class');
  });
  return names.join('.') || 'module';
}

function functionName(node, parents, text) {
  if (node.id) return node.id.name;
  const parent = parents.at(-1);
  switch (parent?.type) {
    case 'VariableDeclarator':
      return squeeze(text.slice(...span(parent.id)).split(':')[0]);
    case 'MethodDefinition':
      return `${parent.kind === 'get' || parent.kind === 'set' ? `${parent.kind} ` : ''}${squeeze(text.slice(...span(parent.key)))}`;
    case 'Property':
    case 'PropertyDefinition':
      return squeeze(text.slice(...span(parent.key)));
    case 'AssignmentExpression':
      return squeeze(text.slice(...span(parent.left)));
    case 'CallExpression':
    case 'NewExpression':
      return `${squeeze(text.slice(...span(parent.callee))).match(/[\w#$]+$/)?.[0] ?? ''}()`;
    case 'TSAsExpression':
    case 'TSSatisfiesExpression':
    case 'ParenthesizedExpression':
      return functionName(node, parents.slice(0, -1), text);
    default:
      return '()';
  }
}

const squeeze = (text) => text.replace(/\s+/g, ' ').trim();

const hash = (text) => createHash('sha256').update(text.replaceAll(' ', '')).digest('hex').slice(0, 8);

function withoutComments(source, comments) {
  let end = 0;
  const parts = comments.map((comment) => {
    const kept = source.slice(end, comment.start);
    end = comment.end;
    return kept + ' '.repeat(comment.end - comment.start);
  });
  return parts.join('') + source.slice(end);
}

/** Returns the offsets of the line starts in a text. */
export function lineStarts(text) {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

function lineOf(starts, offset) {
  return lastAtMost(starts, offset) + 1;
}

/** Returns the index of the last number in `sorted` that is at most `value`, or -1 if every number is larger. */
export function lastAtMost(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
