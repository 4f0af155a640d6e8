// Parameters and operands of conv_pixels.comp and conv_few_channels.comp. Elements have 16 bits.
//
//# CHANNELS_LAST : 0|1 : 1: the image is [images][H][W][channels], otherwise [images][channels][H][W]
#extension GL_EXT_shader_16bit_storage : require

layout(local_size_x = 256) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint images, channels, H, W;
  uint all_channels, all_H, all_W;
  int first_y, first_x;  // padding before the image's first row and pixel
  uint every_y, every_x;  // steps from one copied row and pixel of the image to the next
  uint pixel_tiles, channel_tiles;
} push;

TUFF_READ(0, From, uint16_t, 2)
TUFF_WRITE(1, To, uvec4, 16)
