// The rows of the trial of backups, by name.

import { tryFull } from './full.mjs';
import { tryKills } from './kills.mjs';
import { tryLoad } from './load.mjs';
import { tryMoment } from './moment.mjs';
import { tryRefused } from './refused.mjs';
import { tryTorn } from './torn.mjs';

export const ROWS = {
  load: tryLoad,
  moment: tryMoment,
  torn: tryTorn,
  kills: tryKills,
  full: tryFull,
  refused: tryRefused,
};
