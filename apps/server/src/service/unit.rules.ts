// Text of the systemd unit of an installed server: deploy/systemd/tunnel-server.service with the paths and the user of this machine. Pure
// functions.

export interface UnitFacts {
  /** Node.js, its flags, and the program. */
  readonly program: readonly string[];
  /** Command of tunnel-server: an edge with a platform on another machine, or a whole server. */
  readonly command: 'edge' | 'stack';
  /** Absolute path of the config file. */
  readonly config: string;
  readonly user: string;
  /** Absolute path of the data directory. */
  readonly dataDir: string;
  /** Absolute path of the folder for backups; empty if backups are off. */
  readonly backupDir: string;
}

/** First line of every unit created by `tunnel-server service install`. A unit without the line was written by hand, and is kept. */
export const UNIT_MARK = '# Made by `tunnel-server service install`; run the command again to renew this file.';

const STATE_FOLDER = '/var/lib/';

/** Characters without a meaning in a unit file. Other characters would need escapes that differ between settings. */
const PLAIN = /^[\w@:,.+/=-]+$/;

/** Returns the text of the unit, or the path that a unit file cannot contain. */
export const unitText = (
  template: string,
  facts: UnitFacts,
): { readonly text: string } | { readonly refused: string } => {
  const words = [...facts.program, facts.command, '--config', facts.config];
  const refused = [...words, facts.user, ...foldersOf(facts)].find((word) => !PLAIN.test(word));
  if (refused !== undefined) return { refused };
  // A colon in StateDirectory creates a symbolic link.
  if (isState(facts.dataDir) && facts.dataDir.includes(':')) return { refused: facts.dataDir };
  const lines = template.split('\n').flatMap((line) => {
    const [key = ''] = line.split('=', 1);
    if (key === 'ExecStart') return [`ExecStart=${words.join(' ')}`];
    if (key === 'User' || key === 'Group') return key === 'User' ? [`User=${facts.user}`] : [];
    if (key === 'StateDirectory') return [stateLine(facts.dataDir), ...backupLines(facts)];
    if (key === 'StateDirectoryMode') return isState(facts.dataDir) ? [line] : [];
    // Node.js, the config file or a folder of the server can be in a home folder.
    if (key === 'ProtectHome') return [words.concat(foldersOf(facts)).some(isHome) ? 'ProtectHome=read-only' : line];
    return [line];
  });
  return { text: [UNIT_MARK, '# Put your own changes into a drop-in file: systemctl edit UNIT', ...lines].join('\n') };
};

const isState = (dataDir: string): boolean => dataDir.startsWith(STATE_FOLDER) && dataDir.length > STATE_FOLDER.length;

/** systemd creates only folders below /var/lib. Elsewhere the folder must exist. */
const stateLine = (dataDir: string): string =>
  isState(dataDir) ? `StateDirectory=${dataDir.slice(STATE_FOLDER.length)}` : `ReadWritePaths=${dataDir}`;

/** systemd mounts other folders read-only, so the folder for backups is named, too. */
const backupLines = ({ backupDir }: UnitFacts): string[] => (backupDir === '' ? [] : [`ReadWritePaths=${backupDir}`]);

const foldersOf = ({ dataDir, backupDir }: UnitFacts): string[] =>
  backupDir === '' ? [dataDir] : [dataDir, backupDir];

const isHome = (path: string): boolean => /^\/(?:home|root|run\/user)\//.test(path);

export const unitName = (name: string | undefined): string =>
  name === undefined ? 'tunnel-server.service' : `tunnel-server-${name}.service`;
