// The single executable `tunnel`: Node.js and this file in one. Node.js runs the file as CommonJS, so nothing may wait at the top level.
import { start } from './start.ts';

const args = process.argv.slice(2);
void (args[0] === '__complete'
  ? import('./complete-main.ts').then(({ main }) => main(args))
  : start(args, async () => (await import('./run-any-command.ts')).runAnyCommand(() => {})));
