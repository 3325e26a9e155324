// The platform that this computer uses, for links to the documentation.
import { loadConfig } from '../config/file.ts';
import type { Io } from '../io/io.ts';
import { LoginFile } from './login-file.ts';

/**
 * Returns the URL of the platform where the user is signed in, or else `platform_url` of config.yml. Null if neither names a platform, or
 * if a file cannot be read: a missing link must not hide the text around it.
 */
export const knownPlatform = (io: Io): string | null => {
  try {
    const url = new LoginFile(io).read()?.platform.url ?? loadConfig(undefined, io)?.values.platform_url ?? null;
    return url !== null && /^https?:\/\/[!-~]+$/.test(url) ? url : null;
  } catch {
    return null;
  }
};
