// Runs the measurements of bench:micro and prints a line for each. Bundled and started by ../micro.mjs.
import { admission } from './admission.mjs';
import { carrierWriter } from './carrier-writer.mjs';
import { frameParser } from './frame-parser.mjs';
import { groupPick } from './group-pick.mjs';
import { http1 } from './http1.mjs';
import { measureOperation } from './measure.mjs';
import { policyGate } from './policy-gate.mjs';
import { policyRules } from './policy-rules.mjs';

const words = process.argv.slice(2);
const isChosen = ({ name }) => words.length === 0 || words.some((word) => name.includes(word));
const chosen = [
  ...admission,
  ...frameParser,
  ...carrierWriter,
  ...http1,
  ...groupPick,
  ...policyRules,
  ...policyGate,
].filter(isChosen);

console.log(`node ${process.version}`);
console.log(
  `${'operation'.padEnd(56)} ${'operations/s'.padStart(14)} ${'ns each'.padStart(12)} ${'bytes allocated'.padStart(16)}`,
);
for (const { name, run } of chosen) {
  const { perSecond, bytesEach } = await measureOperation(run);
  const rate = Math.round(perSecond).toLocaleString('en-US');
  const nsEach = (1e9 / perSecond).toFixed(1);
  console.log(`${name.padEnd(56)} ${rate.padStart(14)} ${nsEach.padStart(12)} ${bytesEach.toFixed(1).padStart(16)}`);
}
