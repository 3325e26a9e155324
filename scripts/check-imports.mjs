// Fails on imports forbidden by the tables in ARCHITECTURE.md (npm's hoisting would resolve any sibling package), on forbidden module state, and
// on comments that have become harder to read.
// usage: node scripts/check-imports.mjs [ROOT]
import { resolve } from 'node:path';
import { checkImports } from './lib/check-imports.mjs';
import { styleComplaints } from './lib/comment-style.mjs';
import { ROOT } from './lib/paths.mjs';

const root = resolve(process.argv[2] ?? ROOT);
const { text, code } = checkImports(root);
// The bounds for comments apply to the current repository only.
const complaints = root === ROOT ? styleComplaints(root) : [];
process.stdout.write([...complaints, text].join('\n'));
process.exitCode = complaints.length > 0 ? 1 : code;
