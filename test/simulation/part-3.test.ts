import { playPart } from './play.ts';

playPart(3);
