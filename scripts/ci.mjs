// Runs the stages of CI, one after the other. Called by .ci/run.
import { runSteps, stopOnSignals } from './lib/run-steps.mjs';

process.env.TUNNEL_BROWSER_REQUIRED = '1';
process.env.TUNNEL_STEADY_REQUIRED = '1';
process.env.TUNNEL_RANDOM_TIMES = '1';

/** An npm command whose last line is `N passed, N failed`. Silent: npm's own report of a failed script would follow that line. */
const stage = (budgetSeconds, command) => ({
  name: `npm ${command}`,
  budgetSeconds,
  command: 'npm',
  args: ['--silent', ...command.split(' ')],
  isShown: true,
  count: (code, output) => {
    const [, passed = 0, failed = 1] = /(?:^|\n)(\d+) passed, (\d+) failed\n$/.exec(output) ?? [];
    // A stage that ended badly has a failure, whatever it counted.
    return [Number(passed), Math.max(Number(failed), code === 0 ? 0 : 1)];
  },
});

/** All cases of the random tests are tried once, on the oldest Node.js. */
const A_THIRD = { TUNNEL_RANDOM_TIMES: String(1 / 3) };

stopOnSignals();
process.exitCode = await runSteps(
  [
    [stage(400, 'test')],
    [stage(185, 'run test:slow')],
    [stage(165, 'run test:browser')],
    // Alone: these tests measure memory, and the time in which a program that was killed is back.
    [stage(190, 'run test:load')],
    [
      { ...stage(250, 'run test:nodes -- --node 26 --suite unit --suite data-plane'), env: A_THIRD },
      [
        // The versions between the oldest and the newest Node.js run only the tests that depend on it most; `npm run test:long` runs the others.
        stage(190, 'run test:nodes -- --node 22 --node 24 --suite data-plane'),
        stage(105, 'run test:postgres -- 15'),
      ],
      // It waits most of its time. Passed over, with a line that says so, where there is no Go.
      stage(120, 'run try:acme'),
    ],
  ],
  1200,
);
