// Types into bash, zsh and fish on a terminal and presses Tab: commands, flags, values and names from config.yml must be completed.
// Prints a line with ok or failed for each case. A shell that is not installed is skipped.
// Needs `script` of util-linux, and a build (`npm run build`).
// Usage: node tests/tools/completion/tab.mjs [bash|zsh|fish]
// Exit code: the number of failures.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { hasTerminals, Terminal } from '../first-hour/lib/terminal.mjs';

const PROGRAM = fileURLToPath(new URL('../../../apps/cli/bin/tunnel.mjs', import.meta.url));
/** Maximum wait for a completion, for busy machines. Only failing cases take the whole time. */
const PATIENCE_MS = 20_000;
const TAB = '\t';
/** Keys that close a displayed list, go to the end of the line, and clear the line. */
const EMPTY_LINE = '\u0005\u0015';

/** Arguments that start each shell without the user's settings, and lines that load the completion script. */
const SHELLS = {
  bash: { args: ['--norc', '--noprofile', '-i'], setUp: ["PS1='ready> '", 'source <(tunnel completion bash)'] },
  zsh: {
    args: ['-f', '-i'],
    setUp: [
      "PS1='ready> '",
      'unsetopt ZLE_SP prompt_sp 2>/dev/null',
      'autoload -Uz compinit && compinit -u',
      'source <(tunnel completion zsh)',
    ],
  },
  fish: {
    args: ['--no-config', '-i'],
    setUp: [
      "function fish_prompt; echo 'ready> '; end",
      'set -g fish_autosuggestion_enabled 0',
      'tunnel completion fish | source',
    ],
  },
};

/** Cases: name, text typed before Tab, and the expected screen. Two Tabs list all candidates. */
const CASES = [
  ['a command', `tunnel comp${TAB}`, /tunnel completion/],
  ['a command below another', `tunnel keys cre${TAB}`, /keys create/],
  ['a flag', `tunnel http --subd${TAB}`, /--subdomain/],
  ['a flag after a value that is also a command', `tunnel http --name tcp --no-cap${TAB}`, /--no-capture/],
  ['the actions of service', `tunnel service ${TAB}${TAB}`, /install[\s\S]*uninstall|uninstall[\s\S]*install/],
  ['a value from a list', `tunnel http --local-protocol h2${TAB}`, /--local-protocol h2c/],
  ['a file', `tunnel start --config oth${TAB}`, /--config other\.yml/],
  ['a file after =', `tunnel start --config=oth${TAB}`, /--config=other\.yml/],
  ['a name of config.yml', `tunnel start off${TAB}`, /start office-db/],
  ['a second name', `tunnel start web off${TAB}`, /start web office-db/],
  ['a name with a space', `tunnel start my${TAB}`, /start my\\ database/],
  ['a name of another file', `tunnel start --config other.yml zeb${TAB}`, /other\.yml zebra/],
  ['a name of a file with a space', `tunnel start --config my\\ file.yml gir${TAB}`, /file\.yml giraffe/],
  ['every name, however it is written', `tunnel start ${TAB}${TAB}`, /office-db/],
  ['a running client', `tunnel stop --client ${process.pid}`.slice(0, -1) + TAB, new RegExp(`--client ${process.pid}`)],
];

/** Tunnel names that a shell would execute as commands without quoting. */
const RUN_BY_NOBODY = ['$(touch run)', '`touch run`', ';touch run', '(touch run)', "it's", 'a"b'];

const isThere = (program) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;

const prepare = () => {
  const home = mkdtempSync(join(tmpdir(), 'try-completion-'));
  for (const folder of ['bin', '.tunnel', '.tunnel/run']) mkdirSync(join(home, folder), { mode: 0o700 });
  symlinkSync(PROGRAM, join(home, 'bin', 'tunnel'));
  const entry = '{ proto: tcp, local_port: 22 }';
  writeFileSync(
    join(home, '.tunnel', 'config.yml'),
    `tunnels:\n  web: ${entry}\n  office-db: ${entry}\n  "my database": ${entry}\n${RUN_BY_NOBODY.map((name) => `  ${JSON.stringify(name)}: ${entry}\n`).join('')}`,
  );
  writeFileSync(join(home, 'my file.yml'), `tunnels:\n  giraffe: ${entry}\n`);
  writeFileSync(join(home, 'other.yml'), `tunnels:\n  zebra: ${entry}\n`);
  // The socket of a running client. Completion must not connect to it.
  writeFileSync(join(home, '.tunnel', 'run', `${process.pid}.sock`), '');
  const env = {
    ...process.env,
    HOME: home,
    PATH: `${join(home, 'bin')}:${process.env.PATH}`,
    TERM: 'xterm',
    HISTFILE: '',
  };
  for (const name of ['XDG_CONFIG_HOME', 'XDG_RUNTIME_DIR', 'PROMPT_COMMAND']) delete env[name];
  return { home, env };
};

const tryShell = async (shell) => {
  const { args, setUp } = SHELLS[shell];
  const place = prepare();
  const terminal = new Terminal({ command: [shell, ...args].join(' '), cwd: place.home, env: place.env });
  let failures = 0;
  try {
    await pause(300);
    for (const line of [...setUp, 'echo it is set-up']) terminal.type(`${line.replace('set-up', 'set""up')}\n`);
    if (!(await terminal.shows(/it is setup/, PATIENCE_MS))) {
      console.log(`failed  ${shell}: it does not get ready\n${terminal.text}`);
      return 1;
    }
    for (const [name, typed, expected] of CASES) {
      terminal.type(EMPTY_LINE);
      await pause(200);
      terminal.forget();
      // Text and Tab are sent separately, because a shell may treat a single write as pasted text.
      terminal.type(typed.replaceAll(TAB, ''));
      await pause(200);
      terminal.type(typed.replace(/[^\t]+/, ''));
      const worked = await terminal.shows(expected, PATIENCE_MS);
      console.log(`${worked ? 'ok    ' : 'failed'}  ${shell}: ${name}`);
      if (worked) continue;
      failures += 1;
      console.log(terminal.text.replaceAll(/^/gm, '        | '));
    }
    if (existsSync(join(place.home, 'run'))) {
      failures += 1;
      console.log(`failed  ${shell}: the name of a tunnel was run as a command`);
    }
  } finally {
    terminal.close();
    rmSync(place.home, { recursive: true, force: true });
  }
  return failures;
};

let failures = 0;
if (!hasTerminals()) console.log('skipped: `script` of util-linux is not installed');
else {
  for (const shell of process.argv[2] === undefined ? Object.keys(SHELLS) : [process.argv[2]]) {
    if (isThere(shell)) failures += await tryShell(shell);
    else console.log(`skipped ${shell}: it is not installed`);
  }
}
process.exitCode = failures;
