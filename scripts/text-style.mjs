// How plainly the texts of the product are written: `node scripts/text-style.mjs [PATH ...] [--worst N] [--habits] [--sample N --seed S]`.
// Without options: both figures of each page and workspace, and every complaint about texts and comments; exits with 1 if there is one. A PATH is the beginning of a file's name.
import { parseArgs } from 'node:util';
import { styleComplaints } from './lib/comment-style.mjs';
import { ROOT } from './lib/paths.mjs';
import { figuresByArea, habitsOf, textComplaints, textsOf, worstTexts } from './lib/text-style.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    worst: { type: 'string' },
    habits: { type: 'boolean' },
    all: { type: 'boolean' },
    sample: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const texts = textsOf(ROOT, (file) => positionals.length === 0 || positionals.some((start) => file.startsWith(start)));
const show = ({ file, line, text }) => console.log(`${file}:${line}: ${text}`);

if (values.all) texts.forEach(show);
else if (values.habits) {
  for (const one of texts) {
    const habits = habitsOf(one.text);
    if (habits.length > 0) console.log(`${one.file}:${one.line}: ${habits.join('; ')}\n    ${one.text}`);
  }
} else if (values.worst !== undefined) worstTexts(texts).slice(0, Number(values.worst)).forEach(show);
else if (values.sample !== undefined)
  sample(Number(values.sample), Number(values.seed)).forEach((text) => console.log(text));
else {
  for (const [area, { count, pronouns, banned }] of figuresByArea(texts)) {
    console.log(
      `${area.padEnd(36)} ${String(count).padStart(5)} texts  pronouns ${pronouns.toFixed(1).padStart(5)} %  banned ${banned.toFixed(1).padStart(5)} %`,
    );
  }
  // Comments are measured per workspace, so only without a PATH.
  const complaints = [...textComplaints(texts), ...(positionals.length === 0 ? styleComplaints(ROOT) : [])];
  complaints.forEach((complaint) => console.log(complaint));
  if (complaints.length > 0) process.exitCode = 1;
}

/** Sentences drawn at random: the same seed draws the same of the same texts. */
function sample(count, seed) {
  const sentences = texts.flatMap(({ file, line, text }) =>
    text
      .split(/(?<=[.!?]) (?=[A-Z`])/)
      .filter((sentence) => sentence.split(' ').length >= 5)
      .map((sentence) => `${file}:${line}: ${sentence}`),
  );
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  console.log(`seed ${seed}, ${count} of ${sentences.length} sentences`);
  return Array.from({ length: count }, () => sentences.splice(Math.floor(next() * sentences.length), 1)[0]).filter(
    Boolean,
  );
}
