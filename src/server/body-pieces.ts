/** What came of a body so far. */
import { Pieces } from '../core/pieces.ts';

/** A piece that is shorter is copied: as an object of its own it may cost a hundred times its bytes. */
const smallPiece = 16 * 1024;
const roomOfCopies = 64 * 1024;
/** A longer body of which the length is known is put in its place as it comes: put together later it would be there twice. */
const longBody = 128 * 1024;
const nothing = Buffer.alloc(0);

/**
 * The pieces of a body. It may come byte by byte, and each piece keeps alive what it was read in: 32 MB in
 * chunks of one byte would take gigabytes (G5).
 */
export class BodyPieces {
  #first: Buffer | undefined;
  #rest: Buffer[] | undefined;
  #room = nothing;
  #used = 0;
  /** All of a long body, as far as it came. */
  #long: Buffer | undefined;
  readonly #told: number;

  /** @param told the length as the client tells it; 0 = it does not. No more than that may be added. */
  constructor(told = 0) {
    this.#told = told;
  }

  add(piece: Buffer): void {
    if (this.#told > longBody) this.#addLong(piece);
    // Most bodies are one piece, which nobody copies.
    else if (this.#first === undefined) this.#first = piece;
    else if (piece.length >= smallPiece) this.#closeRoom().push(piece);
    else {
      if (this.#room.length - this.#used < piece.length) {
        this.#closeRoom();
        this.#room = Buffer.allocUnsafeSlow(roomOfCopies);
      }
      this.#used += piece.copy(this.#room, this.#used);
    }
  }

  /** Its memory is taken with its first bytes: who announces much and sends nothing costs nothing. */
  #addLong(piece: Buffer): void {
    this.#long ??= Buffer.allocUnsafeSlow(this.#told);
    this.#used += piece.copy(this.#long, this.#used);
  }

  /** All of them, so many bytes; nothing is kept here. */
  all(length: number): Pieces {
    const pieces = this.#all(length);
    this.clear();
    return pieces;
  }

  #all(length: number): Pieces {
    if (this.#long !== undefined) return Pieces.of(this.#long.subarray(0, length));
    const first = this.#first ?? nothing;
    if (first.length === length) return Pieces.of(first);
    const pieces = new Pieces([first, ...this.#closeRoom()]);
    if (length >= smallPiece) return pieces;
    // It would keep the room alive, many times its length, for as long as its call runs.
    const short = Buffer.allocUnsafeSlow(length);
    pieces.copy(short);
    return Pieces.of(short);
  }

  clear(): void {
    this.#first = undefined;
    this.#rest = undefined;
    this.#room = nothing;
    this.#used = 0;
    this.#long = undefined;
  }

  /** What lies in the room is a piece of its own from here on. */
  #closeRoom(): Buffer[] {
    this.#rest ??= [];
    if (this.#used > 0) this.#rest.push(this.#room.subarray(0, this.#used));
    this.#room = this.#room.subarray(this.#used);
    this.#used = 0;
    return this.#rest;
  }
}
