// Runs the stages of CI in sequence. Called by .ci/run.
import { runSteps, stopOnSignals } from './lib/run-steps.mjs';

process.env.TUNNEL_BROWSER_REQUIRED = '1';
process.env.TUNNEL_STEADY_REQUIRED = '1';
process.env.TUNNEL_RANDOM_TIMES = '1';

/**
 * A stage: an npm command that prints `N passed, N failed` as its last line. `--silent` suppresses npm's report of a failed script, which
 * would follow that line.
 */
const stage = (budgetSeconds, command) => ({
  name: `npm ${command}`,
  budgetSeconds,
  command: 'npm',
  args: ['--silent', ...command.split(' ')],
  isShown: true,
  count: (code, output) => {
    const [, passed = 0, failed = 1] = /(?:^|\n)(\d+) passed, (\d+) failed\n$/.exec(output) ?? [];
    // A stage with a nonzero exit code has at least one failure, regardless of the printed count.
    return [Number(passed), Math.max(Number(failed), code === 0 ? 0 : 1)];
  },
});

/** Factor for stages on further Node.js versions: the stage on the oldest Node.js already tries all cases of the randomized tests. */
const A_THIRD = { TUNNEL_RANDOM_TIMES: String(1 / 3) };

stopOnSignals();
process.exitCode = await runSteps(
  [
    [stage(400, 'test')],
    [stage(235, 'run test:slow')],
    [stage(165, 'run test:browser')],
    // Load tests run without parallel stages, because they measure memory and the restart time of a killed program.
    [stage(190, 'run test:load')],
    [
      { ...stage(250, 'run test:nodes -- --node 26 --suite unit --suite data-plane'), env: A_THIRD },
      [
        // Node.js versions between the oldest and the newest run only the tests that depend most on Node.js; `npm run test:long` runs the
        // remaining tests.
        stage(190, 'run test:nodes -- --node 22 --node 24 --suite data-plane'),
        stage(120, 'run test:postgres -- 15'),
      ],
      // Mostly waits, so it can run in parallel. Skipped with a message on machines without Go.
      stage(120, 'run try:acme'),
    ],
  ],
  1200,
);
