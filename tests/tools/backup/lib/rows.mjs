// The rows of the trial of backups, by name.

import { tryFull } from './full.mjs';
import { tryKills } from './kills.mjs';
import { tryLarge } from './large.mjs';
import { tryMany } from './many.mjs';
import { tryMoment } from './moment.mjs';
import { tryRefused } from './refused.mjs';
import { tryTorn } from './torn.mjs';

export const ROWS = {
  moment: tryMoment,
  many: tryMany,
  torn: tryTorn,
  kills: tryKills,
  full: tryFull,
  large: tryLarge,
  refused: tryRefused,
};
