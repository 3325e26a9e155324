// Commands that start a tunnel with a new key, ready to be pasted into a shell.
import { httpTunnelCommand, type ServerPlace } from '../../app/client-commands.ts';

export interface KeyCommands {
  /** With the key in a variable of the one command. */
  readonly withVariable: string;
  /** With the key in a file that its owner alone can read. */
  readonly withFile: string;
}

const PORT = 3000;

/** `server` undefined: where the client goes by itself. */
export const keyCommands = (token: string, label: string, server: ServerPlace | undefined): KeyCommands => {
  const file = `~/.tunnel/${fileNameOf(label)}.key`;
  const tunnel = httpTunnelCommand(PORT, server);
  return {
    withVariable: `TUNNEL_API_KEY=${token} ${tunnel}`,
    withFile: `(umask 077; mkdir -p ~/.tunnel && echo ${token} > ${file}) && ${tunnel} --token-file ${file}`,
  };
};

/** Nothing that a shell would read as more than a word; never `key`, where `tunnel keys create --save` has its own. */
export const fileNameOf = (label: string): string => {
  const words = label
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 40);
  return words === '' ? 'tunnel' : words;
};
