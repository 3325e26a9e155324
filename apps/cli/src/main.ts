// The executable `tunnel`.
import { start } from './start.ts';

await start(process.argv.slice(2), async () => (await import('./run-any-command.ts')).runAnyCommand);
