// The bundle for each command line.
import { expect, it } from 'vitest';
import { chooseBundle } from './choose-bundle.ts';

it.each(['http', 'files', 'tcp', 'tls', 'udp', 'start'])('%s opens tunnels with a small bundle', (command) => {
  expect(chooseBundle([command, '3000'])).toEqual({ bundle: 'publish', uses: { use: command, built: 'http' } });
});

it.each(['list', 'add', 'p2p', 'mcp', 'htpt', ''])('the bundle with every command runs `%s`', (command) => {
  expect(chooseBundle([command])).toEqual({ bundle: 'tunnel', uses: { use: command, built: null } });
});

it('no arguments need the bundle with every command, because a terminal gets the next step', () => {
  expect(chooseBundle([])).toEqual({ bundle: 'tunnel', uses: { use: '', built: null } });
});

it.each(['--help', '-h', 'help', '--version', '-V'])('%s needs no code of a command', (flag) => {
  expect(chooseBundle([flag])).toEqual({ bundle: 'help', uses: null });
});

it('the help of a command needs that command', () => {
  expect(chooseBundle(['http', '--help'])).toEqual({ bundle: 'publish', uses: { use: 'http --help', built: null } });
  expect(chooseBundle(['help', 'list'])).toEqual({ bundle: 'tunnel', uses: { use: 'help', built: null } });
});

it('shell completion has a bundle of its own', () => {
  expect(chooseBundle(['__complete', '--help'])).toEqual({ bundle: 'complete', uses: null });
});
