// `tunnel files DIR`: publishes a folder; the client is its web server.
import { statSync } from 'node:fs';
import { localLabel } from '@tunnel/client';
import { pathFrom } from '@tunnel/config/layers';
import { Command } from 'commander';
import type { NamedSpec } from '../agent/spec-wire.ts';
import { addMemberFlags } from '../config/flags.ts';
import type { ExitCode } from '../io/exit-codes.ts';
import { addPage, type Page } from '../io/help.ts';
import type { Io } from '../io/io.ts';
import { misuse } from '../io/problem-report.ts';
import { addNamedFlags, addRunFlags, type NamedFlags, namedSpecOf, type RunFlags, runNamed } from './http.ts';

export interface FilesTunnelFlags extends NamedFlags {
  readonly spa?: boolean;
  readonly listing?: boolean;
}

const PAGE: Page = {
  common: [
    '--subdomain',
    '--domain',
    '--spa',
    '--listing',
    '--basic-auth-file',
    '--login',
    '--allow-cidr',
    '--open',
    '--server',
    '--config',
  ],
  examples: [
    'tunnel files ./dist --subdomain manual',
    'tunnel files ./dist --domain docs.example.com',
    'tunnel files ~/share --listing',
  ],
  note: `Dotfiles and links that lead out of the folder are not served.`,
};

export const filesCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addPage(addRunFlags(filesTunnelCommand()), PAGE).action(async (dir: string, flags: FilesTunnelFlags & RunFlags) => {
    finish(await runNamed(filesSpecOf(dir, flags, io), flags, io));
  });

/** What says which tunnel it is, and nothing about a connection. */
export const filesTunnelCommand = (): Command =>
  addNamedFlags(
    new Command('files').description('Publish a folder').argument('<dir>', 'The folder'),
    'files-<folder>',
    {
      addServiceFlags: (command) =>
        command
          .option('--spa', 'Answer missing pages with index.html')
          .option('--listing', 'List folders that have no index.html'),
      addGroupFlags: addMemberFlags,
    },
  );

export const filesSpecOf = (given: string, flags: FilesTunnelFlags, io: Io): NamedSpec => {
  const dir = pathFrom(io.cwd, given, io.home);
  checkFolder(dir);
  const files = { dir, spa: flags.spa === true, listing: flags.listing === true };
  const name = flags.name ?? `files-${localLabel({ files })}`;
  return { protocol: 'http', files, ...namedSpecOf(flags, io), name };
};

/** Who names a folder now has it now; a client that starts with the machine may be earlier than its folder. */
const checkFolder = (dir: string): void => {
  const stat = statSync(dir, { throwIfNoEntry: false });
  if (stat === undefined) throw misuse(`there is no folder ${dir}.`);
  if (!stat.isDirectory()) throw misuse(`${dir} is not a folder.`);
};
