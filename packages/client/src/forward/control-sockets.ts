// Control sockets of the system, such as docker's: a tunnel leads there only with --yes-publish-socket or `allow_control_socket: true`.
import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { controlSocketService } from '@tunnel/core';
import { Fault } from '@tunnel/errors';

export const notAllowed = (target: string, reason: string): Fault =>
  new Fault('CLIENT_TARGET_NOT_ALLOWED', { target, reason });

/** Throws a Fault for a control socket of the system, whether the path names it or a symbolic link to it. */
export const refuseControlSocket = (path: string): void => {
  const absolute = resolve(path);
  const service = controlSocketService(absolute) ?? controlSocketService(realPath(absolute));
  if (service === null) return;
  const reason = `it is a control socket of the system (${service}), and everyone who reaches it controls this machine. To publish it anyway: --yes-publish-socket, or \`allow_control_socket: true\` in config.yml`;
  throw notAllowed(`unix:${path}`, reason);
};

/** The path itself where nothing is there yet, or it cannot be read. */
export const realPath = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
};
