// Control sockets of the system, such as Docker's. A tunnel can lead there only with --yes-publish-socket or `allow_control_socket: true`.
import { readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { Fault } from '@tunnel/errors';
import { controlSocketService } from '@tunnel/rules/net';

export const notAllowed = (target: string, reason: string): Fault =>
  new Fault('CLIENT_TARGET_NOT_ALLOWED', { target, reason });

/** Throws a Fault for a control socket of the system, or for a symbolic link to a control socket. */
export const refuseControlSocket = (path: string): void => {
  const absolute = resolve(path);
  const service = controlSocketService(absolute) ?? controlSocketService(realPath(absolute));
  if (service === null) return;
  const reason = `this is a control socket of the system (${service}), and anyone who can reach it controls this computer. To publish it anyway, use --yes-publish-socket, or \`allow_control_socket: true\` in config.yml`;
  throw notAllowed(`unix:${path}`, reason);
};

/** Maximum number of symbolic links followed in a socket's path, as on Linux. */
const LINKS_MAX = 40;

/**
 * Resolves symbolic links in a path. If the path does not exist yet or cannot be read, the existing part is resolved, because the service
 * may start later.
 */
export const realPath = (path: string, linksLeft = LINKS_MAX): string => {
  try {
    return realpathSync(path);
  } catch {
    const absolute = resolve(path);
    const parent = dirname(absolute);
    if (parent === absolute || linksLeft === 0) return absolute;
    const at = join(realPath(parent, linksLeft - 1), basename(absolute));
    const target = linkTarget(at);
    return target === null ? at : realPath(resolve(dirname(at), target), linksLeft - 1);
  }
};

const linkTarget = (path: string): string | null => {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
};
