import { playPart } from './play.ts';

await playPart(4);
