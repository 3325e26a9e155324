// Lists small faults that can be injected into a source file, each within one line: a reversed comparison, a negated condition, an
// omitted call, a number increased by one. Types, imports and log lines are skipped.
import { parseSync } from 'oxc-parser';
import { lineStarts } from '../coverage/branches.mjs';
import { walkTree } from '../syntax-tree.mjs';

const COMPARISONS = {
  '===': ['!=='],
  '!==': ['==='],
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
};
const ARITHMETIC = { '+': '-', '-': '+', '*': '/', '/': '*', '+=': '-=', '-=': '+=' };
const LOG_CALL = /(?:\blog|Log|[lL]ogger|logs?)\)?\??\.(?:debug|info|warn|error|log)\($/;

/**
 * Lists the possible mutations of a file. `nth` counts equal lines of the file from 1. `from` and `to` are columns of the line without
 * its indentation, so that the mutation can be repeated in another version of the file.
 * @returns {{ operator: string, line: number, text: string, nth: number, from: number, to: number, replacement: string }[]}
 */
export function mutationsOf(file, source) {
  const { program, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
  const found = [];
  walkTree(program, (node, parents) => {
    if (isLeftAlone(node, source)) return false;
    for (const [operator, start, end, replacement] of faultsAt(node, parents, source)) {
      found.push({ operator, start, end, replacement });
    }
    return true;
  });
  const lines = source.split('\n');
  const starts = lineStarts(source);
  return found.map((fault) => placed(fault, lines, starts)).filter(Boolean);
}

/** Returns the source with the mutation, or undefined if the line does not exist. */
export function mutate(source, { text, nth, from, to, replacement }) {
  const lines = source.split('\n');
  let left = nth;
  for (const [at, line] of lines.entries()) {
    if (line.trim() !== text || --left > 0) continue;
    const indent = line.length - line.trimStart().length;
    const changed = line.slice(0, indent + from) + replacement + line.slice(indent + to);
    return [...lines.slice(0, at), changed, ...lines.slice(at + 1)].join('\n');
  }
  return undefined;
}

function placed({ operator, start, end, replacement }, lines, starts) {
  const at = starts.findLastIndex((begin) => begin <= start);
  const line = lines[at];
  const indent = line.length - line.trimStart().length;
  const from = start - starts[at] - indent;
  const to = end - starts[at] - indent;
  if (to > line.trim().length) return undefined;
  const text = line.trim();
  const nth = lines.slice(0, at + 1).filter((other) => other.trim() === text).length;
  return { operator, line: at + 1, text, nth, from, to, replacement };
}

function isLeftAlone(node, source) {
  if (node.type === 'CallExpression') return LOG_CALL.test(source.slice(node.start, node.callee.end + 1));
  const isSyntaxOfValues = ['TSAsExpression', 'TSSatisfiesExpression', 'TSNonNullExpression'].includes(node.type);
  return node.type === 'ImportDeclaration' || (node.type.startsWith('TS') && !isSyntaxOfValues);
}

function faultsAt(node, parents, source) {
  const text = (one) => source.slice(one.start, one.end);
  const between = (left, right, sign) => {
    const start = source.indexOf(sign, left.end);
    return start < right.start ? [start, start + sign.length] : [left.end, right.start];
  };
  switch (node.type) {
    case 'BinaryExpression':
      return operatorsFor(node).map((sign) => ['operator', ...between(node.left, node.right, node.operator), sign]);
    case 'AssignmentExpression': {
      const sign = isText(node.right) ? undefined : ARITHMETIC[node.operator];
      return sign ? [['operator', ...between(node.left, node.right, node.operator), sign]] : [];
    }
    case 'LogicalExpression':
      return logicalFaults(node, between(node.left, node.right, node.operator));
    case 'UnaryExpression':
      return node.operator === '!' ? [['negation', node.start, node.argument.start, '']] : [];
    case 'IfStatement':
    case 'ConditionalExpression':
    case 'WhileStatement':
      return [['negation', node.test.start, node.test.end, `!(${text(node.test)})`]];
    case 'Literal':
      return literalFaults(node, parents.at(-1));
    case 'ReturnStatement':
      return node.argument ? [['return', node.argument.start, node.argument.end, 'undefined']] : [];
    case 'ExpressionStatement':
      return isCall(node.expression) && !LOG_CALL.test(text(node).replace(/\((?:.|\n)*$/, '('))
        ? [['call', node.start, node.end, ';']]
        : [];
    case 'BlockStatement':
      return isFunction(parents.at(-1)) && node.body.length > 0
        ? [['early return', node.body[0].start, node.body[0].start, 'return; ']]
        : [];
    default:
      return [];
  }
}

function operatorsFor({ operator, left, right }) {
  if (operator in COMPARISONS) return COMPARISONS[operator];
  const sign = ARITHMETIC[operator];
  return sign === undefined || isText(left) || isText(right) ? [] : [sign];
}

function logicalFaults({ operator, left, right }, where) {
  if (operator === '??') return [['fallback', left.end, right.end, '']];
  return [['operator', ...where, operator === '&&' ? '||' : '&&']];
}

function literalFaults(node, parent) {
  const isName = (parent.type === 'Property' || parent.type === 'PropertyDefinition') && parent.key === node;
  if (isName) return [];
  if (typeof node.value === 'boolean') return [['literal', node.start, node.end, String(!node.value)]];
  if (typeof node.value === 'number') return [['literal', node.start, node.end, `(${node.raw} + 1)`]];
  return [];
}

const isText = (node) =>
  node.type === 'TemplateLiteral' ||
  (node.type === 'Literal' && typeof node.value === 'string') ||
  (node.type === 'BinaryExpression' && (isText(node.left) || isText(node.right)));

const isCall = (node) => node.type === 'CallExpression' || (node.type === 'AwaitExpression' && isCall(node.argument));

const isFunction = (node) => /Function/.test(node.type);
